"""Experiments of their own: what a table or figure shows that is no score of a trained model.

Each file holds functions that an entry of config/experiments names in `study`.
"""
