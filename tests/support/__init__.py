"""Stand-ins, each for what cannot run in a unit test."""
