"""A graph as people and programs read it: text, JSON, Mermaid, DOT, SVG, HTML."""
