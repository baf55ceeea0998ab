"""Views: rows and trees that commands show, before they are formatted."""
