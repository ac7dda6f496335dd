import ArgumentParser
import ConnectTesting

/// What is kept out of a cassette.
struct RedactionOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A header or trailer whose value is left out, besides authorization, proxy-authorization, cookie, set-cookie, x-api-key and those in base64 (-bin); may be given again.",
      valueName: "name"
    )
  )
  var redactHeader: [String] = []

  @Option(
    help: ArgumentHelp(
      "A field of messages whose value is left out, such as user.password; may be given again. Requests are found again if this is the same at replay.",
      valueName: "path"
    )
  )
  var redactField: [String] = []

  var isEmpty: Bool { self.redactHeader.isEmpty && self.redactField.isEmpty }

  var redaction: Cassette.Redaction {
    var redaction = Cassette.Redaction(fields: self.redactField.map(\.withoutBlanks))
    redaction.headers.formUnion(self.redactHeader.map { $0.withoutBlanks.lowercased() })
    return redaction
  }
}
