"""Output of a dependency graph: text, JSON, Mermaid, DOT, SVG, HTML."""
