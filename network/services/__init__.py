"""The only code that changes segments, attachments and addresses."""
