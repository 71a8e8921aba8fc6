"""Pictures of every page of the dashboard, taken from the real thing with life in it: `make screenshots`."""
