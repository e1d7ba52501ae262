"""Lets the folders below import what stands here."""
