"""Who owns which field: sets of fields, merging by shape, and the rules of server-side apply."""
