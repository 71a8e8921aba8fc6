"""The rules, pure: plain values in, decisions out. No I/O, no clock, no randomness of its own."""
