"""The workbench in the browser: uploads, solving, inspection, correction, downloads. Nothing leaves this machine."""
