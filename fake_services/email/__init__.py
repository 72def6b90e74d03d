"""A fake email provider: one mailbox behind an HTTP door and an SMTP door."""
