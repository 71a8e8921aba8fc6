"""The web pages for the people who run Switchboard: what happens, and the few things to decide."""
