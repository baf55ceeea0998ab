"""What Argo CD's projects allow, asked of the real thing."""
