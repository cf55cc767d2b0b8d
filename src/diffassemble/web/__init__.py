"""The workbench in the browser: bring pieces, watch, judge, correct, take home. viser draws it; nothing leaves here."""
