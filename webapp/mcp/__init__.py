"""An MCP server for other agents: translate, evaluate, profile and explain, without the web application."""
