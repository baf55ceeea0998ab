"""Preflight checks: would the cluster accept the plan?"""
