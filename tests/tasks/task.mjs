// Mails three customers through the provider's API and notes each one in a file.
// usage: node task.mjs [--naive]; the address comes in MAIL_API.
import { existsSync, renameSync, writeFileSync } from "node:fs";

const naive = process.argv.includes("--naive");
for (const n of [1, 2, 3]) {
  const record = `sent-${n}`;
  if (existsSync(record)) continue;
  const headers = { "content-type": "application/json" };
  if (!naive) headers["idempotency-key"] = `mail-${n}`;
  const body = JSON.stringify({
    from: "shop@example.com", to: `customer${n}@example.com`, subject: `Receipt ${n}`, text: "Thanks",
  });
  const answer = await fetch(`${process.env.MAIL_API}/v1/messages`, { method: "POST", headers, body });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  writeFileSync(`${record}.new`, "sent");
  renameSync(`${record}.new`, record);
}
