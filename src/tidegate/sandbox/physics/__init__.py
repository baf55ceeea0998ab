"""What happens in a cluster where no controller is: pods are placed, started, probed and ended."""
