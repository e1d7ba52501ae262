/**
 * What people write in comments, as Markdown. The text becomes elements, never HTML: what looks like markup is shown as
 * it was typed, images are links, and only addresses of the web are followed.
 */
import { lexer, type Token, type Tokens } from "marked";
import type { ComponentChildren, JSX } from "preact";

export function Markdown({ text }: { text: string }): JSX.Element {
  return <div class="markdown">{blocks(lexer(text, { gfm: true, breaks: true }))}</div>;
}

/** Its parts, where a token has some. */
function parts(token: Token): Token[] | undefined {
  return "tokens" in token ? token.tokens : undefined;
}

function blocks(tokens: readonly Token[]): ComponentChildren {
  return tokens.map((token, index) => <Block key={index} token={token} />);
}

function Block({ token }: { token: Token }): JSX.Element | null {
  switch (token.type) {
    case "space":
      return null;
    case "paragraph":
      return <p>{inline(parts(token))}</p>;
    case "heading":
      return <p class="strong">{inline(parts(token))}</p>;
    case "code":
      return (
        <pre tabIndex={0}>
          <code>{(token as Tokens.Code).text}</code>
        </pre>
      );
    case "blockquote":
      return <blockquote>{blocks(parts(token) ?? [])}</blockquote>;
    case "list": {
      const list = token as Tokens.List;
      const items = list.items.map((item, index) => <li key={index}>{blocks(item.tokens)}</li>);
      return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
    }
    case "hr":
      return <hr />;
    case "text":
      return <>{parts(token) ? inline(parts(token)) : plain(token)}</>;
    default:
      return <p>{token.raw}</p>;
  }
}

function inline(tokens: readonly Token[] | undefined): ComponentChildren {
  return (tokens ?? []).map((token, index) => <Inline key={index} token={token} />);
}

function Inline({ token }: { token: Token }): JSX.Element {
  switch (token.type) {
    case "strong":
      return <strong>{inline(parts(token))}</strong>;
    case "em":
      return <em>{inline(parts(token))}</em>;
    case "del":
      return <del>{inline(parts(token))}</del>;
    case "codespan":
      return <code>{plain(token)}</code>;
    case "br":
      return <br />;
    case "link":
    case "image": {
      const { href } = token as Tokens.Link;
      const words = token.type === "image" ? plain(token) || href : inline(parts(token));
      return isWeb(href) ? (
        <a href={href} target="_blank" rel="noreferrer noopener">
          {words}
        </a>
      ) : (
        <span>{words}</span>
      );
    }
    case "escape":
    case "text":
      return <>{parts(token) ? inline(parts(token)) : mentions(plain(token))}</>;
    default:
      return <>{token.raw}</>;
  }
}

/** The lexer writes some characters as entities, for a renderer to HTML; here they are characters again. */
const ENTITIES: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" };

function plain(token: Token): string {
  const text = "text" in token && typeof token.text === "string" ? token.text : token.raw;
  return text.replace(/&(?:amp|lt|gt|quot|#39);/g, (it) => ENTITIES[it] ?? it);
}

function mentions(text: string): ComponentChildren {
  return text.split(/(?<![\w@])(@[\w.+-]*\w)/).map((part, index) =>
    index % 2 ? (
      <strong key={index} class="mention">
        {part}
      </strong>
    ) : (
      part
    ),
  );
}

export function isWeb(address: string): boolean {
  return /^https?:\/\//i.test(address);
}
