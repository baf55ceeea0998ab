"""Programs that compute expected results with the real tools; the tests replay them offline."""
