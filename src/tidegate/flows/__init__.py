"""Application layer: combines the stages and chooses the World."""
