"""What a test needs to make a world and to talk to it."""

from tidegate.model.k8s.objects import JsonObject
from tidegate.testing.desk import Desk, body_of, items_of, live_of
from tidegate.testing.worlds import give, real_world, sandbox_world, served_world

__all__ = [
    "Desk",
    "JsonObject",
    "body_of",
    "give",
    "items_of",
    "live_of",
    "real_world",
    "sandbox_world",
    "served_world",
]
