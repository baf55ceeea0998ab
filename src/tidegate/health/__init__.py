"""Health of one object: a state, a reason for programs and a message for people."""
