"""The confidences from which on a place counts as sure and as likely; every module reads them here."""

SURE = 0.9
LIKELY = 0.5
UPRIGHT = 0.8
"""below this probability, which way is up counts as a guess"""
