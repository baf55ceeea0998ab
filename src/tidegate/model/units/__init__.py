"""Units: what deploys one set of objects from its sources."""
