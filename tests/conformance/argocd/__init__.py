"""What Argo CD promises of its order, case by case; a page lists where each is tested."""
