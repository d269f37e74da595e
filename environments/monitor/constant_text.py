"""The text that a constant expression stands for."""

import ast


def constant_text(node: ast.expr | None) -> str:
    """Return the text of a constant or concatenated string expression, "" for any other."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = constant_text(node.left), constant_text(node.right)
        return left + right if left and right else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(constant_text(part) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return constant_text(node.value)
    if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "::-1":
        return constant_text(node.value)[::-1]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "join":
        parts = node.args[0] if node.args else None
        if isinstance(parts, ast.List | ast.Tuple):
            return constant_text(node.func.value).join(constant_text(part) for part in parts.elts)
    return ""
