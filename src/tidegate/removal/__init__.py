"""Removal: pruned objects, units that left Git, uninstalled and moved releases."""
