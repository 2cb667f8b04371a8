"""Labels nobody should trust, in place of the calls of the made-up run."""

HOSTILE = {
    "chain id": "=cmd|'/c calc'!A1",
    "ledger time": "very long " * 40,
    "APT supply": "<script>alert(1)</script>",
    "balance of 0xb0b": "$x^2$ $\\frac{ \\$",
    "names registered": "\u202eevil\u202c \u0000\x1b[31m \u2066rtl שלום\u2069\r\n# next line",
    "vault total": "🚀 供应 \u200d\ufeff moon",
    "order book depth": "_a | b ` ``c`` [x](javascript:alert(1)) ]]> &amp;",
    "transfer 100": "z" + "\u0301" * 60,
    "register a taken name": '--></text><img src=x onerror=alert(1)> " style="fill: #0072b2"',
    "registrations": "",
}
