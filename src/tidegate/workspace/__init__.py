"""From PATH to units: request, configuration, discovery, rendering, locations, selection."""
