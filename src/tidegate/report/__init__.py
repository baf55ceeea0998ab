"""Output of commands: text for people and JSON documents for programs."""
