"""Things to run and look at."""
