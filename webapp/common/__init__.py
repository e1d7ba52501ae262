"""What every part of the web application uses: request ids, problem documents, bodies, origins, plain pages."""
