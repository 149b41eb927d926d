# Get a REST connection ..
conn = self.rest['Billing API']

# .. send the invoice ..
result = conn.post(invoice)

# .. and check what happened to it.
if result.is_ok:
    self.logger.info(f'Delivered -> {result.response.data}')

elif result.is_in_queue:
    self.logger.info(f'Queued -> {result.msg_id}')
