"""One module for each page: what it asks for, what can be done on it; beside it, what only that page needs."""
