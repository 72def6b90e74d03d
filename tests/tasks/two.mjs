// Charges two customers and notes each one in a file, after the charge: twice if killed in between.
// usage: node two.mjs PAYMENTS_URL
import { existsSync, renameSync, writeFileSync } from "node:fs";

for (const n of [1, 2]) {
  if (existsSync(`done-${n}`)) continue;
  const answer = await fetch(`${process.argv[2]}/v1/charges`, {
    method: "POST",
    headers: { authorization: "Bearer sk_test_node" },
    body: new URLSearchParams({ amount: `${n}00`, currency: "eur", source: "tok_visa" }),
  });
  if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
  writeFileSync("new", (await answer.json()).id);
  renameSync("new", `done-${n}`);
}
