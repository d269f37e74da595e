"""What a teacher is: question, settings, price, protocol."""
