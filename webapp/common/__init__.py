"""What every part of the web application uses: request ids, problems, bodies, origins, plain pages."""
