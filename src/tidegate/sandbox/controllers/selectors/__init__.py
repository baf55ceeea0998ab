"""Those who choose pods by their labels: Services and budgets."""
