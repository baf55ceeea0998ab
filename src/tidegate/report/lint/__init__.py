"""Output of `lint`: text, JSON, SARIF, JUnit, GitHub annotations, Markdown, and rule pages."""
