"""Deeds: a plan and a world become events. The smallest stage."""
