"""External programs: run with limits and a clean environment, and cleaned up completely."""
