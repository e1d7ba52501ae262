"""On PostgreSQL the audit log refuses changes from whoever may write to the database, too."""

from typing import Any

from django.db import migrations

FUNCTION = """
CREATE FUNCTION workspaces_audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is only ever added to';
END
$$;
CREATE TRIGGER workspaces_audit_append_only BEFORE UPDATE OR DELETE ON workspaces_auditentry
    FOR EACH ROW EXECUTE FUNCTION workspaces_audit_append_only();
"""
UNDO = """
DROP TRIGGER workspaces_audit_append_only ON workspaces_auditentry;
DROP FUNCTION workspaces_audit_append_only();
"""


def _on_postgresql(sql: str) -> Any:
    def run(apps: Any, schema_editor: Any) -> None:
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(sql)

    return run


class Migration(migrations.Migration):

    dependencies = [('workspaces', '0003_teams')]

    operations = [migrations.RunPython(_on_postgresql(FUNCTION), _on_postgresql(UNDO))]
