"""What lint has to say, in the forms that people and programs read."""
