# vLLM's own image, as an ordinary user, with a cache of weights that outlives it.
FROM vllm/vllm-openai:v0.11.0
RUN useradd --uid 10001 --create-home vllm && install -d -o vllm /models
ENV HF_HOME=/models HOME=/home/vllm
USER vllm
VOLUME /models
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=600s \
  CMD ["python3", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/health', timeout=4)"]
