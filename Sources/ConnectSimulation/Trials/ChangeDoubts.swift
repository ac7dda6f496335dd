internal import Connect

/// Where changes do not do in the simulation what they would do in production, in words.
enum ChangeDoubts {
  static func notes(_ question: WhatIf) -> [String] {
    let service = question.service
    var notes: [String] = []
    if service.concurrency == nil, question.changes.contains(where: self.addsLoad) {
      notes.append(
        "WARNING: servers have no limit of concurrency here, so that more load makes no call slower (say how many requests a server "
          + "works on at a time)"
      )
    }
    for case .rollout(let drain, let downtime) in question.changes {
      let away = drain + downtime
      guard question.rolloutPause < away, service.servers.count > 1 else { continue }
      let atOnce = Int((away.seconds / max(question.rolloutPause.seconds, 1e-3)).rounded(.up))
      notes.append(
        "the rollout has up to \(min(atOnce, service.servers.count)) of \(service.servers.count) servers away at the same time, since "
          + "each is away for \(Plot.number(away.seconds)) s (let the trial be longer)"
      )
    }
    return notes
  }

  /// Whether servers get more requests by a change.
  private static func addsLoad(_ change: WhatIf.Change) -> Bool {
    switch change {
    case .load(let factor): factor > 1
    case .freeze, .remove, .loseZone, .rollout: true
    case .slow: false
    }
  }
}
