"""Stages of the pipeline as pure functions: arrays in, arrays and small facts out; no executor."""
