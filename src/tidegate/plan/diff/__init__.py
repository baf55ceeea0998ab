"""How a live object differs from the wanted one, and whose fields are whose."""
