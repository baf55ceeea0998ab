"""How `kubectl get` shows objects: the columns that a real server prints, kind by kind."""
