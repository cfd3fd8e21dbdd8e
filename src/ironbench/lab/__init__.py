"""Conducts an experiment, from its declared trials to their records: chooses trials, prepares data, measures."""
