"""Field ownership: field sets, merging by schema, and the rules of server-side apply."""
