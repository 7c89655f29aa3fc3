"""The cases of tests/hostile.py."""
