"""What Argo CD itself says of objects: `python -m tests.oracles.argo_health` asks it and writes."""
